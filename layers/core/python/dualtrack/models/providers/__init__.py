"""Who serves the model, each a folder that can be deleted (`dualtrack.models.provider`)."""
