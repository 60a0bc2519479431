# SPDX-License-Identifier: Apache-2.0
"""`jit`: a compiled function for each content of its arguments."""
