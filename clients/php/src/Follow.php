<?php

declare(strict_types=1);

namespace Dq;

/**
 * Returned by a handler: its message is done, and these messages and signals follow from it, in one step (DQ.ACKSEND).
 *
 * A crash leaves all of that or nothing. If the server refuses it (a full queue, say), the message has failed.
 */
final class Follow
{
    /** @var list<Next|Signal> */
    public readonly array $following;

    /**
     * @param Next|Signal|list<Next|Signal> $following
     * @param mixed $result of the message: a text as it is, anything else as JSON
     */
    public function __construct(Next|Signal|array $following, public readonly mixed $result = null)
    {
        $this->following = is_array($following) ? $following : [$following];
    }

    /**
     * Returns the messages and signals as words of DQ.ACKSEND of the queue `key`.
     *
     * @param list<Next|Signal> $following
     * @return list<string|int>
     */
    public static function words(array $following, string $key): array
    {
        return array_merge(...array_map(static fn (Next|Signal $one): array => $one->words($key), $following));
    }
}
