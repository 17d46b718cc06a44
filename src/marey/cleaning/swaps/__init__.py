"""Labels that swap their markers, within a take and between takes."""
