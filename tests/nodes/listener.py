"""A stand-in for a publisher of a node."""


class Listener:
    """A publisher with a subscriber, or without; it keeps what is published."""

    def __init__(self, count=1):
        self.count, self.messages = count, []

    def get_subscription_count(self):
        return self.count

    def publish(self, message):
        self.messages.append(message)
