"""Albums that are published when the last of their pictures has a thumbnail: parents with children in another queue.

An album comes as one message. Its worker splits it in one step (DQ.ACKSEND): it sends the message that will publish the
album, with CHILDREN, and one message for each picture to a queue of its own, with PARENT. Publishing is held until all
pictures are done, and then delivered in the same millisecond. Nobody counts and nobody polls. A page of the album can show
how far it is: DQ.CHILDREN lists the pictures with their results.

Some pictures are broken: their messages die, and hold their albums. An operator looks at them, and mends some, which are
redriven, and gives up others, which are cancelled. Workers are killed with SIGKILL meanwhile.

Run it against a server that has the module loaded. It needs Python 3.11 or newer and the package:

    python3 -m venv .venv && .venv/bin/pip install ./clients/python
    .venv/bin/python examples/thumbnails/thumbnails.py --url redis://127.0.0.1:6379 --albums 100

The exit code is 1 if an album was published before its last picture had ended, more than once or not at all, or if the
pictures that it was told of are not those that it has. The queues are its own and are removed at the end.
"""

import argparse
import json
import logging
import multiprocessing
import os
import sys
import time

from dqueue import Follow, Next, Queue, Reject, Worker, connect

LEASE_MS = 1000


def pictures_of(options, album):
    """How many pictures an album has: from 1 to the most."""
    return album % options.pictures + 1


def is_broken(album, picture):
    return (album + picture) % 11 == 0


def queues(options):
    client = connect(options.url)
    return [Queue(client, f"{options.prefix}:{name}") for name in ("albums", "pictures")]


def work_on_albums(options, mended):
    logging.disable(logging.WARNING)
    albums, pictures = queues(options)
    # Workers are killed all the time here, which is no message's fault.
    worker = Worker(albums, lease=LEASE_MS, block=500, lost_workers=0)

    @worker.handler("album")
    def split(message):
        album = message.json()
        count = pictures_of(options, album)
        publish = Next(str(album), id=f"publish {album}", type="publish", children=count)
        parent = (albums.key, f"publish {album}")
        parts = [
            Next(json.dumps([album, n]), to=pictures.key, id=f"picture {album}/{n}", parent=parent) for n in range(count)
        ]
        return Follow(publish, *parts)

    @worker.handler("publish")
    def publish(message):
        children = list(albums.children(message.id))
        told = message.children
        return json.dumps(
            {
                "open": sum(child.state not in ("finished", "cancelled") for child in children),
                "thumbnails": sum(child.result == "thumbnail" for child in children),
                "finished": told["finished"],
                "cancelled": told["cancelled"],
            }
        )

    worker.run()


def work_on_pictures(options, mended):
    logging.disable(logging.WARNING)
    _, pictures = queues(options)
    # Workers are killed all the time here, which is no message's fault.
    worker = Worker(pictures, lease=LEASE_MS, block=500, lost_workers=0)

    @worker.handler()
    def scale(message):
        album, picture = message.json()
        time.sleep(options.work_ms / 1000)
        if is_broken(album, picture) and not mended[album]:
            raise Reject("no picture")
        return "thumbnail"

    worker.run()


def operate(pictures, mended):
    """The operator: of the dead pictures those of even albums are mended, the others are given up."""
    seen = {"mended": 0, "given up": 0}
    for record in list(pictures.list("dead")):
        album, _ = json.loads(record.payload)
        if album % 2 == 0:
            mended[album] = 1
            seen["mended"] += pictures.redrive(record.id)
        else:
            seen["given up"] += int(pictures.cancel(record.id) == ["dead"])
    return seen


def play(options, albums, pictures):
    albums.create(retries=-1, retain=3_600_000)
    pictures.create(retries=-1, retain=3_600_000)
    mended = multiprocessing.RawArray("B", options.albums)
    albums.send_many([str(album) for album in range(options.albums)], type="album")
    work = [work_on_albums, work_on_pictures, work_on_pictures, work_on_pictures]
    workers = [multiprocessing.Process(target=one, args=(options, mended)) for one in work]
    seen, killed = {"mended": 0, "given up": 0}, 0
    until = time.monotonic() + options.seconds
    try:
        for worker in workers:
            worker.start()
        while albums.len() or pictures.len() or pictures.len("dead"):
            if killed < options.kills and pictures.len("running"):
                victim = workers[1 + killed % 3]
                victim.kill()
                victim.join()
                killed += 1
                again = multiprocessing.Process(target=work_on_pictures, args=(options, mended))
                workers[1 + (killed - 1) % 3] = again
                again.start()
            for what, count in operate(pictures, mended).items():
                seen[what] += count
            if time.monotonic() > until:
                break
            time.sleep(0.02)
    finally:
        for worker in workers:
            worker.kill()
            worker.join()
    return report(options, albums, seen, killed)


def report(options, albums, seen, killed):
    published = {record.id: record for record in albums.list("finished") if record.type == "publish"}
    expected = sum(pictures_of(options, album) for album in range(options.albums))
    broken = {"albums not published": 0, "published too early": 0, "pictures that do not add up": 0}
    for album in range(options.albums):
        record = published.get(f"publish {album}")
        if record is None:
            broken["albums not published"] += 1
            continue
        told = json.loads(record.result)
        count = pictures_of(options, album)
        given_up = 0 if album % 2 == 0 else sum(is_broken(album, n) for n in range(count))
        broken["published too early"] += told["open"]
        is_right = (told["thumbnails"], told["finished"], told["cancelled"]) == (count - given_up, count - given_up, given_up)
        broken["pictures that do not add up"] += not is_right
    print(f"albums                           {options.albums}")
    print(f"pictures                         {expected}")
    print(f"pictures mended                  {seen['mended']}")
    print(f"pictures given up                {seen['given up']}")
    print(f"workers killed                   {killed}")
    for promise, count in broken.items():
        print(f"{promise:<33}{count}   (must be 0)")
    return 1 if any(broken.values()) or killed < options.kills else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="redis://127.0.0.1:6379")
    parser.add_argument("--albums", type=int, default=100)
    parser.add_argument("--pictures", type=int, default=20, help="the most pictures of an album, up to 100")
    parser.add_argument("--kills", type=int, default=3, help="workers that are killed")
    parser.add_argument("--work-ms", type=float, default=3, help="what a picture takes")
    parser.add_argument("--seconds", type=float, default=120, help="when to give up")
    options = parser.parse_args()
    if options.pictures > 100:
        parser.error("--pictures must be at most 100")
    # One slot: the braces keep both queues of a cluster together.
    options.prefix = f"{{thumbnails:{os.getpid()}}}"
    albums, pictures = queues(options)
    try:
        return play(options, albums, pictures)
    finally:
        albums.client.unlink(albums.key, pictures.key)


if __name__ == "__main__":
    sys.exit(main())
