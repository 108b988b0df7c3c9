#!/usr/bin/env python3
"""Makes the traces of a job of many ranks out of one process's: the same sums, each with an id and a rank of its own.

    many_traces.py FOLDER NUMBER
"""
import pathlib
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "integration_tests"))
import rfx_trace  # noqa: E402

HEADER = 16  # of the file and of a frame


def of_rank(trace, rank):
    """`trace`, the bytes of a file, as another process would have written it."""
    parts, rest = [trace[:HEADER]], trace[HEADER:]
    while rest:
        size, sequence = struct.unpack_from("<II", rest, 4)
        frame, rest = rest[:HEADER + size], rest[HEADER + size:]
        chunk = rfx_trace.trace_pb2.Chunk.FromString(frame[HEADER:])
        said = len(chunk.trace_id) > 0
        for i in range(len(chunk.trace_id)):
            chunk.trace_id[i] = b"%032x" % (rank + 1)
        for run in chunk.run:
            run.process.rank = rank
            said = True
        if said:
            payload = chunk.SerializeToString()
            checked = struct.pack("<II", len(payload), sequence)
            frame = b"RFXC" + checked + struct.pack("<I", rfx_trace.crc32c(checked + payload)) + payload
        parts.append(frame)
    return b"".join(parts)


def main(folder, number):
    bases = [(ROOT / f"integration_tests/golden/traces/{name}.rfx").read_bytes() for name in ("a100", "v100")]
    folder = pathlib.Path(folder)
    folder.mkdir()
    for rank in range(number):
        (folder / f"{rank}.rfx").write_bytes(of_rank(bases[rank % len(bases)], rank))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
