"""The checksum at the end of a DUMP, so that tests can make changed dumps with a right checksum."""

_POLYNOMIAL = 0x95AC9329AC4BC9B5


def _table() -> list:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
        table.append(crc)
    return table


_TABLE = _table()


def crc64(data: bytes) -> int:
    """CRC-64 of the Jones polynomial, bits reversed, starting at 0."""
    crc = 0
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc


def sealed(data: bytes) -> bytes:
    """Appends the right checksum to a payload without one."""
    return data + crc64(data).to_bytes(8, "little")
