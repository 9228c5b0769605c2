package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"prony.example/internal/base/files"
)

// control is the control file of the Debian package. The static programs have no dependencies.
const control = `Package: prony
Version: %s
Architecture: %s
Maintainer: Prony <prony@localhost>
Section: devel
Priority: optional
Installed-Size: %d
Description: compare the performance of HTTP services
 Starts services under the same limits, applies the same load, and reports
 whether a difference is real, with confidence intervals and verdicts.
`

// debian makes the package for an architecture: both programs, manual and completion.
func (r release) debian(arch string) error {
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		r.report("no package for Debian: dpkg-deb is missing (apt-get install dpkg-dev)")
		return nil
	}
	tree, err := os.MkdirTemp("", "prony-package-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tree)
	fileList, err := r.installed(arch)
	if err != nil {
		return err
	}
	sizeBytes, err := place(tree, fileList)
	if err != nil {
		return err
	}
	version, err := versionOf(r.linux("prony", arch))
	if err != nil {
		return err
	}
	if version = strings.ReplaceAll(version, "-", "~"); version == "devel" {
		version = "0~devel" // a version must begin with a digit
	}
	if err := os.Mkdir(filepath.Join(tree, "DEBIAN"), 0o755); err != nil {
		return err
	}
	text := fmt.Sprintf(control, version, arch, sizeBytes>>10)
	err = files.Put(filepath.Join(tree, "DEBIAN", "control"), []byte(text))
	if err != nil {
		return err
	}
	r.report("package for Debian on " + arch)
	_, err = r.command(nil, "dpkg-deb", "--root-owner-group", "--build", tree,
		filepath.Join(r.dir, "prony_"+version+"_"+arch+".deb"))
	return err
}

// installed returns a package's files: their sources by destination.
func (r release) installed(arch string) (map[string]string, error) {
	share := filepath.Join(r.dir, "share")
	files := map[string]string{
		"usr/bin/prony":      r.linux("prony", arch),
		"usr/bin/prony-home": r.linux("prony-home", arch),
		"usr/share/bash-completion/completions/prony":    filepath.Join(share, "prony.bash"),
		"usr/share/fish/vendor_completions.d/prony.fish": filepath.Join(share, "prony.fish"),
		"usr/share/zsh/vendor-completions/_prony":        filepath.Join(share, "prony.zsh"),
		"usr/share/doc/prony/copyright":                  filepath.Join(r.root, "LICENSE"),
		"usr/share/doc/prony/CHANGELOG.md":               filepath.Join(r.root, "CHANGELOG.md"),
		"usr/share/doc/prony/prony" + billSuffix:         r.linux("prony", arch) + billSuffix,
		"usr/share/doc/prony/prony-home" + billSuffix:    r.linux("prony-home", arch) + billSuffix,
	}
	pages, err := filepath.Glob(filepath.Join(share, "man", "man1", "*"))
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		files["usr/share/man/man1/"+filepath.Base(page)] = page
	}
	return files, nil
}

// place copies files below a folder, in folders named bin as programs, and returns their total
// size.
func place(folder string, fileList map[string]string) (sizeBytes int64, err error) {
	for to, from := range fileList {
		text, err := os.ReadFile(from)
		if err != nil {
			return 0, err
		}
		sizeBytes += int64(len(text))
		mode := os.FileMode(0o644)
		if to = filepath.Join(folder, to); filepath.Base(filepath.Dir(to)) == "bin" {
			mode = 0o755
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return 0, err
		}
		if err := errors.Join(files.Put(to, text), os.Chmod(to, mode)); err != nil {
			return 0, err
		}
	}
	return sizeBytes, nil
}

// linux returns the path of a program for Linux.
func (r release) linux(name, arch string) string {
	return filepath.Join(r.dir, program(name, "linux/"+arch))
}

// recipe is the Dockerfile of the image: only the programs and trusted certificates, without a
// shell.
const recipe = `FROM scratch
COPY bin /usr/bin
COPY certificates /etc/ssl/certs/ca-certificates.crt
COPY tmp /tmp
WORKDIR /work
USER 65532
ENTRYPOINT ["/usr/bin/prony"]
`

// certificates are possible files of this machine's trusted certificates, on Debian and others.
var certificates = []string{"/etc/ssl/certs/ca-certificates.crt",
	"/etc/pki/tls/certs/ca-bundle.crt"}

// image makes the image for an architecture, as an archive for docker load.
func (r release) image(arch string) error {
	_, err := r.command(nil, "docker", "version", "--format", "{{.Server.Version}}")
	if err != nil {
		r.report("no image: no engine of Docker answers")
		return nil
	}
	dir, err := os.MkdirTemp("", "prony-image-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	tmp := filepath.Join(dir, "tmp")
	// Any user may run the image and needs the folder for temporary files.
	if err := errors.Join(os.Mkdir(tmp, 0o755), os.Chmod(tmp, 0o777|os.ModeSticky)); err != nil {
		return err
	}
	_, err = place(dir, map[string]string{"bin/prony": r.linux("prony", arch),
		"bin/prony-home": r.linux("prony-home", arch)})
	if err != nil {
		return err
	}
	var trusted []byte
	for _, path := range certificates {
		if trusted, err = os.ReadFile(path); err == nil {
			break
		}
	}
	texts := map[string][]byte{"certificates": trusted, "Dockerfile": []byte(recipe)}
	for name, text := range texts {
		if err := files.Put(filepath.Join(dir, name), text); err != nil {
			return err
		}
	}
	r.report("image for linux/" + arch)
	tag := "prony/prony:" + arch
	if _, err := r.command(nil, "docker", "build", "-q", "--platform=linux/"+arch, "-t", tag,
		dir); err != nil {
		return err
	}
	_, err = r.command(nil, "docker", "save", "-o",
		filepath.Join(r.dir, "prony-image-linux-"+arch+".tar"), tag)
	return err
}
