/** Programs one after the other, each with a line of its own before it. Arguments: their names and arguments, "--" between. */
public class Suite {
  public static void main(String[] arguments) throws Exception {
    for (String program : String.join(" ", arguments).split(" -- ")) {
      System.out.println("== " + program);
      String[] words = program.split(" ");
      try {
        String[] rest = java.util.Arrays.copyOfRange(words, 1, words.length);
        Class.forName(words[0]).getMethod("main", String[].class).invoke(null, (Object) rest);
      } catch (java.lang.reflect.InvocationTargetException error) {
        error.getCause().printStackTrace(System.out);
      }
    }
    System.exit(0);
  }
}
