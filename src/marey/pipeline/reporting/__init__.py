"""What a solve reports: findings, tables, and options that had no effect."""
