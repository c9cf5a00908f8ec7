"""What the prior is: when it is learned, by which criterion, by which search, and of which transformation of y."""
