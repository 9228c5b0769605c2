package tlsconn

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"hash"

	"golang.org/x/crypto/chacha20poly1305"
)

// suite defines a TLS 1.3 cipher suite (RFC 8446, appendix B.4).
type suite struct {
	hash   func() hash.Hash
	key    int // bytes
	cipher func(key []byte) (cipher.AEAD, error)
}

var suites = map[uint16]*suite{
	tls.TLS_AES_128_GCM_SHA256:       {sha256.New, 16, gcm},
	tls.TLS_AES_256_GCM_SHA384:       {sha512.New384, 32, gcm},
	tls.TLS_CHACHA20_POLY1305_SHA256: {sha256.New, chacha20poly1305.KeySize, chacha20poly1305.New},
}

func gcm(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

const nonceSize = 12 // of every suite

// half is one direction of a connection: its current key and the number of the next record.
type half struct {
	suite  *suite
	secret []byte
	aead   cipher.AEAD
	iv     [nonceSize]byte
	nonce  [nonceSize]byte // buffer for a record's nonce
	seq    uint64
}

// key derives the key from a traffic secret.
func (h *half) key(s *suite, secret []byte) error {
	key, err := expand(s, secret, "key", s.key)
	if err != nil {
		return err
	}
	iv, err := expand(s, secret, "iv", nonceSize)
	if err != nil {
		return err
	}
	aead, err := s.cipher(key)
	if err != nil {
		return fmt.Errorf("key the cipher: %w", err)
	}
	*h = half{suite: s, secret: secret, aead: aead, iv: [nonceSize]byte(iv)}
	return nil
}

// update derives the key from the next generation of the secret (RFC 8446, section 7.2).
func (h *half) update() error {
	next, err := expand(h.suite, h.secret, "traffic upd", len(h.secret))
	if err != nil {
		return err
	}
	return h.key(h.suite, next)
}

// expand is HKDF-Expand-Label with an empty context (RFC 8446, section 7.1).
func expand(s *suite, secret []byte, label string, length int) ([]byte, error) {
	label = "tls13 " + label
	info := binary.BigEndian.AppendUint16(nil, uint16(length))
	info = append(append(info, byte(len(label))), label...)
	out, err := hkdf.Expand(s.hash, secret, string(append(info, 0)), length)
	if err != nil {
		return nil, fmt.Errorf("derive %s: %w", label, err)
	}
	return out, nil
}

// number returns the nonce of the next record and increments its number.
func (h *half) number() []byte {
	h.nonce = h.iv
	low := h.nonce[nonceSize-8:]
	binary.BigEndian.PutUint64(low, binary.BigEndian.Uint64(low)^h.seq)
	h.seq++
	return h.nonce[:]
}
