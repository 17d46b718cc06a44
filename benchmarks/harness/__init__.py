"""What every benchmark is measured, limited, recorded and shown with."""
