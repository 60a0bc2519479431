# SPDX-License-Identifier: Apache-2.0
"""What pydag uses of other libraries that they don't promise."""
