"""Steps with contacts, beside MuJoCo and Pinocchio."""
