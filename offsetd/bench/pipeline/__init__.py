"""How fast the pipeline is, beside Spark's own way of doing the same work in the same rounds."""
