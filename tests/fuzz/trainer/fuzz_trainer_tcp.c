/* fuzz_trainer_tcp.c - any bytes as what another rank sends over TCP: read within memory's bounds, or refused with a reason.
 *
 *   input  [role:1], then the stream
 */
#include "fuzz/words_input.h"
#include "support/tcp_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct tcp_stream stream;
    if (size < 1)
        return 0;
    const bool opened = tcp_stream_open(&stream, bytes[0] % TCP_STREAM_ROLES);
    if (opened) {
        STK_FUZZ_MUST_HOLD(tcp_stream_read(&stream, bytes + 1, size - 1));
        STK_FUZZ_MUST_HOLD(tcp_stream_check(&stream) == NULL);
    }
    tcp_stream_close(&stream);
    return 0;
}
