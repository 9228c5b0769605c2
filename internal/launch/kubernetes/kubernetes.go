// Package kubernetes launches a target as a pod of a Kubernetes cluster, on the node that the lab
// itself runs on, under limits that its kubelet sets and that are read back from the kernel, and
// stops it. It drives kubectl, so that the user's own cluster, context and way to log in hold.
package kubernetes
