package pages

import (
	"fmt"
	"strings"
)

// need is a line that fails, and prints why, if something for a command is missing.
type need string

// Base images of services.
var (
	goBases   = []string{"golang:1.26.5-bookworm", "gcr.io/distroless/static-debian12:nonroot"}
	javaBases = []string{"maven:3.9.16-eclipse-temurin-25-noble",
		"eclipse-temurin:25.0.3_9-jre-noble"}
)

// images requires images that are on the machine or in a registry that answers.
func images(names []string) need {
	return need(fmt.Sprintf("for image in %s; do docker image inspect $image >/dev/null 2>&1 || "+
		"timeout 120 docker pull --quiet $image >/dev/null 2>&1 || "+
		`{ echo "no image $image here, and no registry answers"; exit 1; }; done`,
		strings.Join(names, " ")))
}

// cores requires a number of processors.
func cores(n int) need {
	return need(fmt.Sprintf(`test "$(nproc)" -ge %[1]d || { echo "it takes %[1]d cores"; exit 1; }`,
		n))
}

const (
	registry need = "timeout 60 docker buildx imagetools inspect golang:1.26.5-bookworm " +
		`>/dev/null 2>&1 || { echo "no registry answers"; exit 1; }`
	realStack need = `test -z "$GRAFANA_IMAGE" || { echo "Grafana's image is a stand-in"; exit 1; }`
)

// standIn is an image that stands for a program of the stack, and for a service.
const standIn = "prony-test-stand-in:1"

// Lines that give a machine what pages assume.
const (
	makeStandIn = `mkdir -p ../stand-in && cp internal/dev/pages/testdata/standin/Dockerfile ` +
		`../stand-in && CGO_ENABLED=0 go build -o ../stand-in/standin ` +
		`./internal/dev/pages/testdata/standin && ` +
		`docker build --quiet --tag ` + standIn + ` ../stand-in`

	// standIns replaces the images of the stack that no registry gives, by variables of the shell.
	standIns = makeStandIn + ` && while IFS== read -r name image; do case $name in *_IMAGE) ` +
		`docker image inspect "$image" >/dev/null 2>&1 || ` +
		`timeout 120 docker pull --quiet "$image" >/dev/null 2>&1 || ` +
		`export "$name=` + standIn + `";; esac; done <deploy/.env`

	nodeImages = `printf '#!/bin/sh\ndocker save "$1" | ctr -n k8s.io images import -\n' ` +
		`>../bring && chmod +x ../bring && export PRONY_KUBERNETES_LOAD=$(realpath ../bring)`

	// shop is the service that the page loads.
	shop = makeStandIn + ` && docker save ` + standIn + ` | ctr -n k8s.io images import - && ` +
		`kubectl create namespace shop && ` +
		`kubectl create deployment shop -n shop --image=` + standIn + ` --port=8080 && ` +
		`kubectl expose deployment shop -n shop && ` +
		`kubectl wait -n shop --for=condition=Available --timeout=2m deployment/shop`

	// volumes makes a default StorageClass with a volume, unless the cluster has one.
	volumes = `kubectl get storageclass -o 'jsonpath={.items[*].metadata.annotations}' | ` +
		`grep -q 'is-default-class":"true' || { mkdir -p ../volume && chmod 777 ../volume && ` +
		`kubectl apply -f - <<EOF
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: prony-test-pages
  labels: {prony-test: pages}
  annotations: {storageclass.kubernetes.io/is-default-class: "true"}
provisioner: kubernetes.io/no-provisioner
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: prony-test-pages, labels: {prony-test: pages}}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: prony-test-pages
  hostPath: {path: $(realpath ../volume), type: Directory}
EOF
}`

	// revisions are two checkouts, and project a project of one target in a directory of its own.
	revisions = `mkdir ../ci && git clone --quiet . ../ci/head && git clone --quiet . ../ci/base ` +
		`&& cd ../ci`
	project = `mkdir own && CGO_ENABLED=0 go -C head/services/go-nethttp build -buildvcs=false ` +
		`-o "$PWD/own/app" . && cd own && cat >prony.yaml <<EOF
targets: {base: {command: ./app}}
requests: [{request: 'GET /hello/virtual?key=1'}]
EOF`
)
