# SPDX-License-Identifier: Apache-2.0
"""What a DAG looks like: text, table, drawing, HTML, all made from one listing of its nodes."""
