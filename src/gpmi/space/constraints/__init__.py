"""Known constraints: how they are written, which points satisfy them, how to move and sample inside them."""
