"""Label swaps: labels on each other's markers, within a take or between takes."""
