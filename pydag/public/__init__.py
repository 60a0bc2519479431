# SPDX-License-Identifier: Apache-2.0
"""How functions become public: of the core, with options, with short tracebacks, at first use."""
