"""The tools that gpmi is compared with, each behind one protocol, and the table of their runs."""
