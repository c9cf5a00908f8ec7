"""Runs that outlive their processes: a log of events in a database, from which everything else is replayed."""
