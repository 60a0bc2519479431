# SPDX-License-Identifier: Apache-2.0
"""Checks the files of models: are they whole, which arrays are tied, and does the config agree?

Everything here reads headers, and of arrays only what it has to compare. A file is data: nothing in
it is run.
"""
