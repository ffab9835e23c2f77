from pathlib import Path


def flip_a_bit(file: Path) -> None:
    """Change one bit in the middle of a file, as a failing disk may."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
