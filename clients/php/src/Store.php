<?php

declare(strict_types=1);

namespace Dq;

/** Where Offload keeps payloads, such as S3. */
interface Store
{
    public function get(string $key): ?string;

    public function put(string $key, string $payload): void;

    public function delete(string $key): void;
}
