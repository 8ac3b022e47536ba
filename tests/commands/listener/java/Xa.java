import com.ibm.mq.jms.MQXAConnectionFactory;
import com.ibm.msg.client.wmq.WMQConstants;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.List;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Queue;
import javax.jms.XAConnection;
import javax.jms.XASession;
import javax.transaction.xa.XAException;
import javax.transaction.xa.XAResource;
import javax.transaction.xa.Xid;

/**
 * A transaction manager that moves a message from XA.IN to XA.OUT and stops after each step, until a line comes on stdin: the queue
 * manager has been killed and is there again. Then it recovers, ends what is in doubt, and says where the message is. Arguments: port; commit or rollback.
 */
public class Xa {
  record Id(byte[] transaction) implements Xid {
    @Override
    public int getFormatId() {
      return 7;
    }

    @Override
    public byte[] getGlobalTransactionId() {
      return transaction;
    }

    @Override
    public byte[] getBranchQualifier() {
      return new byte[] {1, 0, 2};
    }
  }

  interface Step {
    void run() throws Exception;
  }

  static final int ALL = XAResource.TMSTARTRSCAN | XAResource.TMENDRSCAN;

  static String taken(XASession session, XAResource resource, Queue queue) throws Exception {
    Xid xid = new Id(("take " + queue.getQueueName()).getBytes());
    resource.start(xid, XAResource.TMNOFLAGS);
    MessageConsumer consumer = session.createConsumer(queue);
    Message message = consumer.receiveNoWait();
    consumer.close();
    resource.end(xid, XAResource.TMSUCCESS);
    resource.commit(xid, true);
    return message == null ? "nothing" : message.getBody(String.class);
  }

  public static void main(String[] arguments) throws Exception {
    MQXAConnectionFactory factory = new MQXAConnectionFactory();
    factory.setTransportType(WMQConstants.WMQ_CM_CLIENT);
    factory.setHostName("127.0.0.1");
    factory.setPort(Integer.parseInt(arguments[0]));
    factory.setChannel("APP.SVRCONN");
    factory.setQueueManager("QM1");
    BufferedReader told = new BufferedReader(new InputStreamReader(System.in));
    boolean commits = arguments[1].equals("commit");
    for (int last = 1; last <= 5; last++) {
      XAConnection connection = factory.createXAConnection();
      connection.start();
      XASession session = connection.createXASession();
      XAResource resource = session.getXAResource();
      Queue in = session.createQueue("queue:///XA.IN");
      Queue out = session.createQueue("queue:///XA.OUT");
      Xid load = new Id("load".getBytes());
      resource.start(load, XAResource.TMNOFLAGS);
      session.createProducer(in).send(session.createTextMessage("one"));
      resource.end(load, XAResource.TMSUCCESS);
      resource.commit(load, true);
      session.createProducer(out).close(); // which makes the queue
      Xid xid = new Id(("move " + last).getBytes());
      Step[] steps = {
        () -> resource.start(xid, XAResource.TMNOFLAGS),
        () -> session.createProducer(out).send(session.createConsumer(in).receive(10_000)),
        () -> resource.end(xid, XAResource.TMSUCCESS),
        () -> resource.prepare(xid),
        () -> end(resource, xid, commits),
      };
      for (Step step : List.of(steps).subList(0, last)) {
        step.run();
      }
      System.out.println("step " + last);
      told.readLine();
      try {
        connection.close();
      } catch (Exception broken) {
        // it is
      }
      XAConnection again = factory.createXAConnection();
      again.start();
      XASession next = again.createXASession();
      XAResource recovering = next.getXAResource();
      Xid[] found = recovering.recover(ALL);
      for (Xid each : found) {
        end(recovering, each, commits);
        try {
          end(recovering, each, commits);
        } catch (XAException error) {
          System.out.println("again " + error.errorCode);
        }
      }
      System.out.println(found.length + " in doubt, " + taken(next, recovering, in) + ", " + taken(next, recovering, out));
      again.close();
    }
  }

  static void end(XAResource resource, Xid xid, boolean commits) throws XAException {
    if (commits) {
      resource.commit(xid, false);
    } else {
      resource.rollback(xid);
    }
  }
}
