"""Parameters that exist only under a condition, and constants."""
