"""What people look at: figures (Matplotlib) and the HTML report."""
