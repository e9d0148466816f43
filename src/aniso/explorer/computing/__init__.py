"""From choices to results: previews, threads, memory."""
