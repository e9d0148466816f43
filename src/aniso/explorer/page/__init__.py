"""The elements of the page."""
