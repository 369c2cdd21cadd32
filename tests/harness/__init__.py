"""The parts that the server tests share: real servers, a raw client, readers of replies, models to compare with."""
