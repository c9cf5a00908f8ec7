"""The model of f after t values: fitted prior, transformation of y, posterior, probability of success."""
