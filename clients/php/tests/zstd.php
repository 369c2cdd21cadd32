<?php

/*
 * The functions of the extension zstd, which is no package of Debian 12, by the library that dpkg needs.
 */

declare(strict_types=1);

if (!function_exists('zstd_compress')) {
    function zstd_library(): FFI
    {
        static $library;
        return $library ??= FFI::cdef(
            'size_t ZSTD_compressBound(size_t); size_t ZSTD_compress(void*, size_t, const char*, size_t, int); unsigned ZSTD_isError(size_t);'
            . 'size_t ZSTD_decompress(void*, size_t, const char*, size_t); unsigned long long ZSTD_getFrameContentSize(const char*, size_t);',
            'libzstd.so.1',
        );
    }

    function zstd_compress(string $payload, int $level = 3): string|false
    {
        $most = zstd_library()->ZSTD_compressBound(strlen($payload));
        $into = FFI::new("char[$most]");
        return FFI::string($into, zstd_library()->ZSTD_compress($into, $most, $payload, strlen($payload), $level));
    }

    function zstd_uncompress(string $payload): string|false
    {
        $size = zstd_library()->ZSTD_getFrameContentSize($payload, strlen($payload));
        $into = FFI::new('char[' . max(1, $size) . ']');
        $done = zstd_library()->ZSTD_decompress($into, $size, $payload, strlen($payload));
        return zstd_library()->ZSTD_isError($done) ? false : FFI::string($into, $done);
    }
}
