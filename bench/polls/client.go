// Command client polls a server as the Flux Operator does and prints what that took as JSON. It is written in the
// operator's language: it says the same ClientHello, and costs less CPU than the servers that it measures.
package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

var (
	address     = flag.String("address", "", "host and port of the server")
	pollsFile   = flag.String("polls", "", "file of lines: path, space, token; polled in their order, over and over")
	requests    = flag.Int("requests", 1000, "number of polls")
	first       = flag.Int("first", 0, "the line of the file to begin with")
	connections = flag.Int("connections", 8, "polls at a time")
	keep        = flag.Bool("keep", false, "keep connections, as a proxy does, instead of one for each poll")
	caFile      = flag.String("ca", "", "certificate to trust: the server speaks TLS")
	classic     = flag.Bool("x25519", false, "offer X25519 alone instead of what Go offers, which begins with X25519MLKEM768")
)

type report struct {
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpuSeconds"`
	Bytes      int64   `json:"bytes"`
	P50        float64 `json:"p50"`
	P99        float64 `json:"p99"`
}

func main() {
	log.SetFlags(0)
	flag.Parse()
	polls, err := readPolls(*pollsFile)
	if err != nil {
		log.Fatal(err)
	}
	config, err := tlsConfig(*caFile)
	if err != nil {
		log.Fatal(err)
	}
	result, err := run(polls, config)
	if err != nil {
		log.Fatal(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		log.Fatal(err)
	}
}

func run(polls [][]byte, config *tls.Config) (report, error) {
	var next, received atomic.Int64
	times := make([]float64, *requests)
	failures := make(chan error, *connections)
	var group sync.WaitGroup
	started := time.Now()
	for range *connections {
		group.Go(func() {
			one := &poller{config: config, received: &received}
			defer one.close()
			for {
				n := int(next.Add(1)) - 1
				if n >= *requests {
					return
				}
				sent := time.Now()
				request := polls[(*first+n)%len(polls)]
				if err := one.poll(request); err != nil {
					failures <- fmt.Errorf("%s: %w", bytes.SplitN(request, []byte("\r\n"), 2)[0], err)
					return
				}
				times[n] = float64(time.Since(sent).Microseconds()) / 1000
			}
		})
	}
	group.Wait()
	select {
	case err := <-failures:
		return report{}, err
	default:
	}
	seconds := time.Since(started).Seconds()
	slices.Sort(times)
	return report{
		Seconds:    seconds,
		CPUSeconds: cpuSeconds(),
		Bytes:      received.Load(),
		P50:        times[len(times)/2],
		P99:        times[len(times)*99/100],
	}, nil
}

// poller is one client, which has one connection at a time.
type poller struct {
	config   *tls.Config
	received *atomic.Int64
	conn     net.Conn
	reader   *bufio.Reader
}

func (p *poller) poll(request []byte) error {
	if p.conn == nil {
		if err := p.open(); err != nil {
			return err
		}
	}
	if _, err := p.conn.Write(request); err != nil {
		return err
	}
	if err := p.readAnswer(); err != nil {
		return err
	}
	if !*keep {
		p.close()
	}
	return nil
}

func (p *poller) open() error {
	conn, err := net.Dial("tcp", *address)
	if err != nil {
		return err
	}
	if p.config != nil {
		conn = tls.Client(conn, p.config)
	}
	p.conn = conn
	if p.reader == nil {
		p.reader = bufio.NewReaderSize(conn, 16*1024)
	} else {
		p.reader.Reset(conn)
	}
	return nil
}

func (p *poller) close() {
	if p.conn != nil {
		p.conn.Close()
		p.conn = nil
	}
}

// readAnswer fails on anything but a whole answer with status 200.
func (p *poller) readAnswer() error {
	length := -1
	for first := true; ; first = false {
		line, err := p.reader.ReadSlice('\n')
		if err != nil {
			return err
		}
		p.received.Add(int64(len(line)))
		text := bytes.TrimRight(line, "\r\n")
		if first && !bytes.HasPrefix(text, []byte("HTTP/1.1 200")) {
			return fmt.Errorf("unexpected answer: %s", text)
		}
		if len(text) == 0 {
			break
		}
		name, value, _ := bytes.Cut(text, []byte(": "))
		if bytes.EqualFold(name, []byte("Content-Length")) {
			if length, err = strconv.Atoi(string(value)); err != nil {
				return err
			}
		}
	}
	if length < 0 {
		return fmt.Errorf("an answer without Content-Length")
	}
	p.received.Add(int64(length))
	_, err := io.CopyN(io.Discard, p.reader, int64(length))
	return err
}

func readPolls(name string) ([][]byte, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var polls [][]byte
	for line := range strings.Lines(string(text)) {
		path, token, _ := strings.Cut(strings.TrimSpace(line), " ")
		polls = append(polls, fluxRequest(path, token))
	}
	if len(polls) == 0 {
		return nil, fmt.Errorf("%s holds no polls", name)
	}
	return polls, nil
}

// fluxRequest returns what Flux Operator 0.58 sends, byte for byte, and what a proxy that keeps connections adds to it.
func fluxRequest(path, token string) []byte {
	lines := []string{
		"GET " + path + " HTTP/1.1",
		"Host: " + *address,
		"User-Agent: flux-operator/v0.58.1",
		"Accept: application/json",
		"Authorization: Bearer " + token,
		"Accept-Encoding: gzip",
	}
	if *keep {
		lines = append(lines, "X-Forwarded-For: 127.0.0.1")
	}
	return []byte(strings.Join(lines, "\r\n") + "\r\n\r\n")
}

// tlsConfig returns nil without a certificate. No sessions are resumed, as by the operator.
func tlsConfig(name string) (*tls.Config, error) {
	if name == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", name)
	}
	config := &tls.Config{RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS13}
	if *classic {
		config.CurvePreferences = []tls.CurveID{tls.X25519}
	}
	return config, nil
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}
