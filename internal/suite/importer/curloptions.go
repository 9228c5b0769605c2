package importer

import "strings"

// curlOption is what an option of curl means for a request.
type curlOption struct {
	name    string // the long one, without dashes
	value   bool   // whether a value follows
	effect  effect
	refusal string // of effect refused: why the command cannot be taken
}

type effect int

const (
	ignored    effect = iota // of what curl shows, of its time limits, or of other protocols
	connection               // of the connection, which the suite or the launcher decides
	applied                  // see line.apply
	refused                  // without it the request would be another one
)

// curlOptions are all options of curl 7.88 to 8.17 (curl's src/tool_getparam.c), by long and short
// name with dashes. With any other option, nobody knows which words are addresses.
var curlOptions = func() map[string]curlOption {
	out := map[string]curlOption{}
	add := func(effect effect, value bool, refusal, names string) {
		for name := range strings.FieldsSeq(names) {
			long, short, two := strings.Cut(name, "/")
			o := curlOption{long, value, effect, refusal}
			if out["--"+long] = o; two {
				out["-"+short] = o
			}
		}
	}
	add(applied, true, "", "request/X header/H data/d data-raw data-ascii data-binary "+
		"data-urlencode json url-query user/u oauth2-bearer user-agent/A cookie/b referer/e url "+
		"range/r continue-at/C proto-default form/F form-string")
	add(applied, false, "", "get/G head/I compressed globoff/g location/L location-trusted follow "+
		"path-as-is")
	add(refused, true, "an upload", "upload-file/T")
	add(refused, true, "a configuration of its own", "config/K")
	add(refused, true, "a signature that curl computes", "aws-sigv4")
	add(refused, false, "an authorization that curl computes", "anyauth digest negotiate ntlm "+
		"ntlm-wb")
	add(refused, false, "credentials from a file", "netrc/n netrc-optional")
	add(refused, true, "credentials from a file", "netrc-file")
	add(refused, true, "a request target of its own", "request-target")
	add(refused, true, "variables of curl", "variable")
	add(refused, false, "no request", "version/V help/h manual/M")
	add(ignored, true, "", "output/o output-dir write-out/w max-time/m connect-timeout retry "+
		"retry-delay retry-max-time cookie-jar/c dump-header/D create-file-mode "+
		"egd-file expect100-timeout ftp-account ftp-alternative-to-user ftp-method ftp-port/P "+
		"ftp-ssl-ccc-mode hostpubmd5 hostpubsha256 ipfs-gateway knownhosts krb krb4 libcurl "+
		"login-options mail-auth mail-from mail-rcpt max-filesize max-redirs parallel-max "+
		"parallel-max-host proto proto-redir pubkey quote/Q random-file rate sasl-authzid "+
		"speed-limit/Y speed-time/y stderr telnet-option/t tftp-blksize trace trace-ascii "+
		"trace-config upload-flags etag-save delegation service-name")
	add(ignored, false, "", "append/a basic buffer/N clobber compressed-ssh create-dirs crlf "+
		"disable/q disable-eprt disable-epsv disallow-username-in-url eprt epsv fail/f "+
		"fail-early fail-with-body form-escape ftp-create-dirs ftp-pasv ftp-pret "+
		"ftp-skip-pasv-ip ftp-ssl ftp-ssl-ccc ftp-ssl-control ftp-ssl-reqd "+
		"ignore-content-length include/i show-headers junk-session-cookies/j list-only/l "+
		"mail-rcpt-allowfails metalink out-null parallel/Z parallel-immediate post301 post302 "+
		"post303 progress-bar/# progress-meter raw remote-header-name/J remote-name/O "+
		"remote-name-all remote-time/R remove-on-error retry-all-errors retry-connrefused "+
		"sasl-ir show-error/S silent/s skip-existing styled-output suppress-connect-headers "+
		"tftp-no-options trace-ids trace-time use-ascii/B verbose/v xattr npn wdebug")
	add(connection, true, "", "abstract-unix-socket alt-svc cacert capath cert/E cert-type "+
		"ciphers connect-to crlfile curves dns-interface dns-ipv4-addr dns-ipv6-addr "+
		"dns-servers doh-url ech engine etag-compare happy-eyeballs-timeout-ms haproxy-clientip "+
		"hsts interface ip-tos keepalive-cnt keepalive-time key key-type limit-rate local-port "+
		"noproxy pass pinnedpubkey preproxy proxy/x proxy-cacert proxy-capath proxy-cert "+
		"proxy-cert-type proxy-ciphers proxy-crlfile proxy-header proxy-key proxy-key-type "+
		"proxy-pass proxy-pinnedpubkey proxy-service-name proxy-tls13-ciphers "+
		"proxy-tlsauthtype proxy-tlspassword proxy-tlsuser proxy-user/U proxy1.0 resolve "+
		"sigalgs socks4 socks4a socks5 socks5-gssapi-service socks5-hostname ssl-sessions "+
		"time-cond/z tls-max tls13-ciphers tlsauthtype tlspassword tlsuser unix-socket "+
		"vlan-priority")
	add(connection, false, "", "alpn ca-native cert-status doh-cert-status doh-insecure "+
		"dump-ca-embed false-start haproxy-protocol http0.9 http1.0/0 http1.1 http2 "+
		"http2-prior-knowledge http3 http3-only insecure/k ipv4/4 ipv6/6 keepalive mptcp "+
		"proxy-anyauth proxy-basic proxy-ca-native proxy-digest proxy-http2 proxy-insecure "+
		"proxy-negotiate proxy-ntlm proxy-ssl-allow-beast proxy-ssl-auto-client-cert "+
		"proxy-tlsv1 proxytunnel/p sessionid socks5-basic socks5-gssapi socks5-gssapi-nec ssl "+
		"ssl-allow-beast ssl-auto-client-cert ssl-no-revoke ssl-reqd ssl-revoke-best-effort "+
		"sslv2/2 sslv3/3 tcp-fastopen tcp-nodelay tls-earlydata tlsv1/1 tlsv1.0 tlsv1.1 "+
		"tlsv1.2 tlsv1.3 tr-encoding")
	return out
}()
