"""The clients and drivers on versions of their libraries that people have, as far as the registries have them."""
