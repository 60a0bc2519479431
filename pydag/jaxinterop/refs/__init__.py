# SPDX-License-Identifier: Apache-2.0
"""Contents of refs: a compiled function takes and returns them in the place of the refs."""
