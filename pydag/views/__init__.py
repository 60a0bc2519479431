# SPDX-License-Identifier: Apache-2.0
"""Shows DAGs as text, table, drawing and HTML, all made from one listing of the nodes."""
