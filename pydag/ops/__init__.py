# SPDX-License-Identifier: Apache-2.0
"""Operations on whole DAGs; `pydag` re-exports the names.

The help of each function explains each option, in the same words: `public/options.py` has the text,
and tests/docs/test_help.py checks it.
"""
