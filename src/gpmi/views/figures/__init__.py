"""What people look at: pictures, progress, the demonstration."""
