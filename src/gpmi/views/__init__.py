"""What people look at: figures (Matplotlib) and the HTML report. `run_view` reads the run for both."""
