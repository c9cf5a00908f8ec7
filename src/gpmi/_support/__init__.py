"""What every package may use: types, checks of arguments, text for people, interrupts, processes, random points."""
