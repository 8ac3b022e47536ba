"""The replay of several queue managers as one network: their captures in, who receives what where, out."""
