package importer

import "testing"

// Lines of public documentation: Microsoft's of IIS 5, 6 and 10, AWS' of CloudFront and of Elastic
// Load Balancing, and HAProxy's Configuration Manual, 8.2.3 and 8.5. Lines without their source in
// these are variants of them.
const (
	iisLog = `#Software: Microsoft Internet Information Services 10.0
#Version: 1.0
#Date: 2026-05-02 17:42:15
#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip ` +
		`cs(User-Agent) cs(Referer) sc-status sc-substatus sc-win32-status time-taken
2026-05-02 17:42:15 172.22.255.255 GET /images/picture.jpg - 80 - 172.30.255.255 ` +
		`Mozilla/4.0+(compatible;MSIE+5.5;+Windows+2000+Server) - 200 0 0 15
2026-05-02 17:42:15 172.22.255.255 GET /items/7 id=1&q=a+b 80 - 172.30.255.255 M - 200 0 0 15
2026-05-02 17:42:16 172.22.255.255 GET /my+file - 80 - 172.30.255.255 M - 200 0 0 15
2026-05-02 17:42:16 172.22.255.255 POST /items - 80 - 172.30.255.255 M - 201 0 0 15
2026-05-02 17:42:16 172.22.255.255 GET /gone - 80 - 172.30.255.255 M - 404 0 2 15
2026-05-02 17:42:16 172.22.255.255 GET /short
#Fields: time cs-method cs-uri-stem sc-status
17:42:17 GET /items/8 200
25:42:17 GET /items/8 200
`
	cloudFrontLog = "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method " +
		"cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) cs-uri-query\n" +
		"2019-12-04\t21:02:31\tLAX1\t392\t192.0.2.100\tGET\td111111abcdef8.cloudfront.net\t" +
		"/index.html\t200\t-\tMozilla/5.0%20(Windows%20NT%2010.0)\ta=%20b\n" +
		"2019-12-04\t21:02:31\tLAX1\t392\t192.0.2.100\tGET\td111111abcdef8.cloudfront.net\t" +
		"/my%2520file\t200\t-\tM\ta=%252Fb%2525\n" +
		"2019-12-04\t21:02:31\tLAX1\t0\t192.0.2.100\tGET\td111111abcdef8.cloudfront.net\t" +
		"/slow\t000\t-\tM\t-\n"
	albRest = ` "curl/7.46.0" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 ` +
		`arn:aws:elasticloadbalancing:us-east-2:123456789012:targetgroup/my-targets/73e2d6bc24 ` +
		`"Root=1-58337281-1d84f3d73c47ec4e58577259" "www.example.com" "arn:aws:acm:c/12345678" `
	albLog = `http 2018-07-02T22:23:00.186641Z app/my-loadbalancer/50dc6c495c0c9188 ` +
		`192.168.131.39:2817 10.0.0.1:80 0.000 0.001 0.000 200 200 34 366 ` +
		`"GET http://www.example.com:80/ HTTP/1.1" "curl/7.46.0" - - ` +
		`arn:aws:elasticloadbalancing:us-east-2:123456789012:targetgroup/my-targets/73e2d6bc24 ` +
		`"Root=1-58337262-36d228ad5d99923122bbe354" "-" "-" 0 2018-07-02T22:22:48.364000Z ` +
		`"forward" "-" "-" "10.0.0.1:80" "200" "-" "-"` + "\n" +
		`h2 2018-07-02T22:23:00.186641Z app/my-loadbalancer/50dc6c495c0c9188 10.0.1.252:48160 ` +
		`10.0.0.66:9000 0.000 0.002 0.000 200 200 5 257 ` +
		`"GET https://10.0.2.105:773/a?b=\x22c HTTP/2.0"` + albRest +
		`1 2018-07-02T22:22:49.364000Z "redirect" "https://example.com:80/" "-" "-" "200"` + "\n" +
		`ws 2018-07-02T22:23:00.186641Z app/my-loadbalancer/50dc6c495c0c9188 10.0.0.140:40914 ` +
		`10.0.1.192:8010 0.001 0.003 0.000 101 101 218 587 "GET http://10.0.0.30:80/ HTTP/1.1"` +
		albRest + `1 2018-07-02T22:22:48.364000Z "forward" "-" "-" "10.0.1.192:8010" "101"` + "\n" +
		`http 2018-11-30T22:23:00.186641Z app/my-loadbalancer/50dc6c495c0c9188 ` +
		`192.168.131.39:2817 - 0.000 -1 -1 502 - 34 366 "GET http://www.example.com:80/ HTTP/1.1"` +
		albRest + `0 2018-11-30T22:22:48.364000Z "forward" "-" "LambdaInvalidResponse" "-" "-"` +
		"\n" + `http 2018-11-30T22:23:00.186641Z app/my-loadbalancer/50dc6c495c0c9188 ` +
		`192.168.131.39:2817 - -1 -1 -1 400 - 0 0 "- http://www.example.com:80- -"` + albRest +
		`- 2018-11-30T22:22:48.364000Z "-" "-" "-" "-" "-"` + "\n" +
		`2015-05-13T23:39:43.945958Z my-loadbalancer 192.168.131.39:2817 10.0.0.1:80 0.000086 ` +
		`0.001048 0.001337 200 200 0 57 "GET https://www.example.com:443/ HTTP/1.1" ` +
		`"curl/7.38.0" DHE-RSA-AES128-SHA TLSv1.2` + "\n"
	haproxyLog = `Feb  6 12:14:14 localhost haproxy[14389]: 10.0.1.2:33317 ` +
		`[06/Feb/2009:12:14:14.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- ` +
		`1/1/1/1/0 0/0 {1wt.eu} {} "GET /index.html HTTP/1.1"` + "\n" +
		`haproxy[674]: 127.0.0.1:33319 [15/Oct/2003:08:31:57.100] px-http px/Srv1 9/0/7/14/+30 ` +
		`200 +243 - - ---- 3/3/3/3/0 0/0 "GET /image HTTP/1.0"` + "\n" +
		`10.0.1.2:33318 [06/Feb/2009:12:14:14.700] www~ app/s1 0/0/0/2/2 200 +9 - - ---- ` +
		`1/1/1/1/0 0/0 {a.test|Mozilla/5.0 (X11)} {} "GET https://a.test/s?q=#22x#22 HTTP/2.0" ` +
		`0/0/0/0/0 a.test/TLSv1.3/TLS_AES_256_GCM_SHA384` + "\n" +
		`10.0.1.2:33318 [06/Feb/2009:12:14:15.700] www www/<NOSRV> -1/-1/-1/-1/5000 408 212 - - ` +
		`cR-- 1/1/1/1/0 0/0 "<BADREQ>"` + "\n" +
		`10.0.1.2:33318 [06/Feb/2009:12:14:15.700] www app/s1 0/0/0/-1/9 -1 0 - - CH-- ` +
		`1/1/1/1/0 0/0 "GET /s HTTP/1.1"` + "\n" +
		`10.0.1.2:33318 [06/Feb/2009:12:14:15.700] www app/s1 0/0/0/1/9 200 0 - - ---- ` +
		`1/1/1/1/0 0/0 "GET /long/path/that/is/cut` + "\n" +
		`10.0.1.2:33313 [06/Feb/2009:12:12:51.443] fnt bck/srv1 0/0/5007 212 -- 0/0/0/0/3 0/0` +
		"\n"
)

// Load balancers write the origin of a request, and IIS names its columns in the file.
func TestLogsOfLoadBalancers(t *testing.T) {
	check := drafted(t, "")
	check(iisLog, "GET /items/7?id=1&q=a+b 1×200\nGET /my+file 1×200\nGET /items/8 1×200\n"+
		"- 1: static files\n"+
		"- 1: requests with a body, which a log does not have\n"+
		"- 1: requests whose response was an error (4xx, 5xx)\n"+
		"- 1: lines with more or fewer values than #Fields\n"+
		"- 1: lines whose time is not a valid date\n"+
		"~ 1: a + in a path, which IIS also writes for a space, is sent as +")
	check(cloudFrontLog, "GET /index.html?a=%20b 1×200\nGET /my%20file?a=%2Fb%25 1×200\n"+
		"- 1: the client ended the request before a response")
	check(albLog, "GET / 2×200\nGET /a?b=%22c 1×200\n"+
		"- 1: requests that switched to another protocol (101)\n"+
		"- 1: requests whose response was an error (4xx, 5xx)\n"+
		"- 1: lines whose request is not HTTP\n"+
		"~ 1: a request of another host than www.example.com goes to the same service")
	check(haproxyLog, "GET /index.html 1×200\nGET /image 1×200\nGET /s?q=%22x%22 1×200\n"+
		"- 1: lines whose request is not HTTP\n"+
		"- 1: the client ended the request before a response\n"+
		"- 1: lines that are cut off\n"+
		"- 1: lines in a format that is not known")
	d, err := Options{}.Read("f", []byte(albLog))
	if err != nil || len(d.Arrivals) != 2 || d.Arrivals[1] != 1e9 {
		t.Errorf("arrivals %v, error %v; want those of creation, one second apart", d.Arrivals, err)
	}
}
