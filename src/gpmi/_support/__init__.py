"""Utilities for every package: types, checks of arguments, text for display, interrupts, processes, random points."""
