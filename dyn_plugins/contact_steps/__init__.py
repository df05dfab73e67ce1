"""Steps of robots with contacts as traced algorithms, and derivatives."""
