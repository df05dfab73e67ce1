"""Time steps of robots with contacts as traced algorithms, and their derivatives."""
