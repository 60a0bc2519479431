# SPDX-License-Identifier: Apache-2.0
"""What is done with whole DAGs; `pydag` shows the names.

Each option is explained at each function, in the same words, so that an editor shows it there;
tests/docs/test_help.py sees to that.
"""
