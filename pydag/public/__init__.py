# SPDX-License-Identifier: Apache-2.0
"""How names become public: functions of the core, re-exports, names that were renamed."""
