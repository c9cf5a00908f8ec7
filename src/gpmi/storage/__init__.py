"""Runs that outlive their processes: a log of entries in a database, from which everything else is replayed."""
