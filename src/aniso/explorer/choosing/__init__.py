"""What was chosen on the page."""
