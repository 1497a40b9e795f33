/* tcp_rendezvous.c - see tcp.h: where the ranks of this run meet, by the variables that torchrun sets.
 *
 * torchrun's agent keeps a store at MASTER_PORT and says so by TORCHELASTIC_USE_AGENT_STORE (PyTorch,
 * torch/distributed/elastic/agent/server/local_elastic_agent.py and torch/distributed/rendezvous.py); MASTER_ADDR is
 * rank 0's node. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/environment.h"
#include "loader/base/error.h"
#include "trainer/peers/tcp_peers.h"

static const struct stk_place nowhere = STK_NOWHERE;

enum { PORT_MAX = 65535, DIGITS_MAX = 5 };

static int missing(const char *name, const char *why, const stoker_ranks *ranks,
                   stoker_error *error)
{
    return stk_error_set(
        error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
        "%s is not set: rank %u of %u needs it to find rank 0 (%s; torchrun sets it)", name,
        ranks->rank, ranks->world_size, why);
}

/* Only digits: strtoul would accept a sign and spaces. */
static bool read_port(const char *text, uint32_t *out)
{
    const size_t length = strlen(text);
    for (size_t i = 0; i < length; i++)
        if (!isdigit((unsigned char)text[i]))
            return false;
    if (length == 0 || length > DIGITS_MAX)
        return false;
    *out = (uint32_t)strtoul(text, NULL, 10);
    return *out >= 1 && *out <= PORT_MAX;
}

static int port_of(const char *name, const char *text, uint32_t *out, stoker_error *error)
{
    if (read_port(text, out))
        return STOKER_OK;
    return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
                         "%s=\"%.40s\" is not a port in 1..%d", name, text, PORT_MAX);
}

/* "[::1]" is "::1". */
static int read_host(struct stk_tcp_rendezvous *out, const char *text, stoker_error *error)
{
    size_t length = strlen(text);
    if (length > 2 && text[0] == '[' && text[length - 1] == ']') {
        text++;
        length -= 2;
    }
    if (length >= sizeof(out->host))
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
                             "MASTER_ADDR has %zu characters, at most %zu are possible", length,
                             sizeof(out->host) - 1);
    memcpy(out->host, text, length);
    out->host[length] = '\0';
    return STOKER_OK;
}

static bool agent_listens(void)
{
    const char *const text = stk_environment("TORCHELASTIC_USE_AGENT_STORE");
    return text != NULL && strcmp(text, "True") == 0;
}

/* The ports behind 65535 are those before MASTER_PORT. */
static void list_ports(struct stk_tcp_rendezvous *out, uint32_t first)
{
    for (uint32_t i = agent_listens() ? 1 : 0; i < STK_TCP_PORTS; i++)
        out->ports[out->port_count++] = (uint16_t)(first + i <= PORT_MAX ? first + i : first - i);
}

static uint64_t mix(uint64_t hash, const void *bytes, size_t count)
{
    const uint64_t prime = UINT64_C(0x100000001B3); /* FNV-1a */
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * prime;
    return hash;
}

/* The same on all ranks of a run, and hardly on those of another one, or of the same one before a restart. */
static uint64_t hash_run(void)
{
    static const char *const names[] = { "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT",
                                         "MASTER_PORT", "STOKER_PORT" };
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *const text = stk_environment(names[i]);
        hash = mix(hash, text == NULL ? "" : text, text == NULL ? 1 : strlen(text) + 1);
    }
    return hash;
}

static uint64_t process_number(const void *somewhere)
{
    const uint64_t numbers[] = { (uint64_t)getpid(), stk_now_ns(), (uint64_t)(uintptr_t)somewhere };
    return mix(UINT64_C(0xCBF29CE484222325), numbers, sizeof(numbers));
}

int stk_tcp_find_rendezvous(struct stk_tcp_rendezvous *out, const stoker_ranks *ranks,
                            stoker_error *error)
{
    const char *const host = stk_environment("MASTER_ADDR");
    const char *const port = stk_environment("MASTER_PORT");
    const char *const ours = stk_environment("STOKER_PORT");
    uint32_t first = 0;
    *out = (struct stk_tcp_rendezvous){ .local = ranks->local_world_size == ranks->world_size };
    if (host == NULL)
        return missing("MASTER_ADDR", "the name or address of its node", ranks, error);
    if (port == NULL && ours == NULL)
        return missing("MASTER_PORT", "a port of its node", ranks, error);
    int rc = read_host(out, host, error);
    if (rc == STOKER_OK)
        rc = ours != NULL ? port_of("STOKER_PORT", ours, &first, error)
                          : port_of("MASTER_PORT", port, &first, error);
    if (rc != STOKER_OK)
        return rc;
    if (ours != NULL)
        out->ports[out->port_count++] = (uint16_t)first;
    else
        list_ports(out, first);
    out->hello = (struct stk_tcp_hello){ .version = STK_TCP_VERSION,
                                         .rank = ranks->rank,
                                         .world_size = ranks->world_size,
                                         .word_bytes = sizeof(struct stk_word),
                                         .run = hash_run(),
                                         .process = process_number(out) };
    return STOKER_OK;
}
