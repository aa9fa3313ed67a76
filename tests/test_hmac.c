/* examples/hmac_sha256.h against the published values: the examples of FIPS 180-4 (one block, two blocks, a million
   letters) and the seven of RFC 4231; and whether it matters in which pieces a message comes. */
#include "examples/hmac_sha256.h"
#include "greatest.h"

#include <stdio.h>

static void hex(const unsigned char *p, size_t bytes, char *text) {
    size_t i;
    for (i = 0; i < bytes; i++) snprintf(text + 2 * i, 3, "%02x", (unsigned)p[i]);
}

TEST sha256_of(const char *part, int times, const char *expected) {
    unsigned char out[32];
    char text[65];
    cg_sha256 h;
    cg_sha256_init(&h);
    while (times--) cg_sha256_add(&h, part, strlen(part));
    cg_sha256_end(&h, out);
    hex(out, 32, text);
    ASSERT_STR_EQ(expected, text);
    PASS();
}

/* Every length around one and two blocks, cut in two at every place, against the same message at once; and no two
   lengths of zeros have the same hash, as they would have if the length did not count. */
TEST sha256_in_pieces(void) {
    static unsigned char message[200], whole[200][32], zeros[200];
    unsigned char out[32];
    cg_sha256 h;
    size_t n, cut;
    for (n = 0; n < sizeof message; n++) message[n] = (unsigned char)(n * 7 + 1);
    for (n = 0; n < sizeof message; n++) {
        cg_sha256_init(&h);
        cg_sha256_add(&h, message, n);
        cg_sha256_end(&h, whole[n]);
        for (cut = 0; cut <= n; cut++) {
            cg_sha256_init(&h);
            cg_sha256_add(&h, message, cut);
            cg_sha256_add(&h, message + cut, n - cut);
            cg_sha256_end(&h, out);
            ASSERT_MEM_EQ(whole[n], out, 32);
        }
    }
    for (n = 0; n < sizeof zeros; n++) {
        cg_sha256_init(&h);
        cg_sha256_add(&h, zeros, n);
        cg_sha256_end(&h, whole[n]);
        for (cut = 0; cut < n; cut++) ASSERT(memcmp(whole[cut], whole[n], 32));
    }
    PASS();
}

TEST hmac_of(int key_byte, size_t key_bytes, const char *data, int data_byte, size_t bytes, const char *expected) {
    unsigned char key[131], fill[200], mac[32];
    char text[65];
    size_t i;
    for (i = 0; i < key_bytes; i++) key[i] = (unsigned char)(key_byte ? key_byte : (int)i + 1);
    if (key_bytes == 4) memcpy(key, "Jefe", 4);
    memset(fill, data_byte, sizeof fill);
    if (data) cg_hmac_sha256(key, key_bytes, data, strlen(data), mac);
    else cg_hmac_sha256(key, key_bytes, fill, bytes, mac);
    hex(mac, 32, text);
    text[strlen(expected)] = 0; /* one of them is published cut to 128 bits */
    ASSERT_STR_EQ(expected, text);
    PASS();
}

TEST differs(void) {
    unsigned char a[32], b[32];
    size_t i;
    int bit;
    for (i = 0; i < 32; i++) a[i] = b[i] = (unsigned char)(i * 37);
    ASSERT(!cg_hmac_differs(a, b, 32));
    for (i = 0; i < 32; i++)
        for (bit = 1; bit < 256; bit *= 2) {
            b[i] = (unsigned char)(b[i] ^ bit);
            ASSERT(cg_hmac_differs(a, b, 32));
            b[i] = a[i];
        }
    PASS();
}

SUITE(published) {
    RUN_TESTp(sha256_of, "", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    RUN_TESTp(sha256_of, "abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    RUN_TESTp(sha256_of, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    RUN_TESTp(sha256_of,
        "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrs"
        "tu",
        1, "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
    RUN_TESTp(sha256_of, "a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    RUN_TEST(sha256_in_pieces);
    RUN_TESTp(hmac_of, 0x0b, 20, "Hi There", 0, 0, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    RUN_TESTp(hmac_of, 1, 4, "what do ya want for nothing?", 0, 0,
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    RUN_TESTp(hmac_of, 0xaa, 20, NULL, 0xdd, 50, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
    RUN_TESTp(hmac_of, 0, 25, NULL, 0xcd, 50, "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
    RUN_TESTp(hmac_of, 0x0c, 20, "Test With Truncation", 0, 0, "a3b6167473100ee06e0c796c2955552b");
    RUN_TESTp(hmac_of, 0xaa, 131, "Test Using Larger Than Block-Size Key - Hash Key First", 0, 0,
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    RUN_TESTp(hmac_of, 0xaa, 131,
        "This is a test using a larger than block-size key and a larger than block-size data. The key needs to be "
        "hashed before being used by the HMAC algorithm.",
        0, 0, "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
    RUN_TEST(differs);
}

GREATEST_MAIN_DEFS();

int main(int argc, char **argv) {
    GREATEST_MAIN_BEGIN();
    RUN_SUITE(published);
    GREATEST_MAIN_END();
}
